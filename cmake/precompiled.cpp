// Its target has the precompiled headers of all components (WarmgraphComponent.cmake).
