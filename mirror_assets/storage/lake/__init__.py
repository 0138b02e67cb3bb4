"""The stores of source tables: one declaration serves both readers, deltalake and Hadoop's file systems."""
