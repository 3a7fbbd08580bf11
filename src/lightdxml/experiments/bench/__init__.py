"""Side by side: the methods of this field on the same matrices, each in a process of its own, from one command."""
