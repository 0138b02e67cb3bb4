"""Tests of the store on OneLake: what its answers mean, how long it is asked, and what is read back."""
