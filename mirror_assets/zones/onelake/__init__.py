"""A landing zone on OneLake, through azure-storage-file-datalake (reference `onelake`)."""
