"""Learning after training: new documents and labels, corrections, and the journal of what was learned."""
