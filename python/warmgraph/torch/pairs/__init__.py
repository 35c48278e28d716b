"""Records calls under gradients as a pair: a forward and a backward half."""
