"""For serving engines: tables of graphs, and programs that capture by themselves."""
