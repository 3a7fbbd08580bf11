"""Tests of learning after training."""
