"""Source tables where lakes lie: S3 (moto's server), OneLake (the loopback), Hadoop's and Google's stores."""
