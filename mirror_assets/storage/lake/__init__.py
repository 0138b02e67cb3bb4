"""The stores that source tables lie in: one declaration serves both readers, deltalake and Hadoop's file systems."""
