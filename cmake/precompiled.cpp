// A source for the target whose precompiled headers all components share (WarmgraphComponent.cmake).
