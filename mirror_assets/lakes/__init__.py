"""Reaching sources: one declaration of a store serves both readers, deltalake and Hadoop's file systems."""
