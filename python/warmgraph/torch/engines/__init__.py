"""Support for serving engines: tables of graphs, and programs that capture graphs by themselves."""
