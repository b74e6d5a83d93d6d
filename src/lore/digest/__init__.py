"""Digest: sessions become logs, logs become knowledge, knowledge is kept true."""
