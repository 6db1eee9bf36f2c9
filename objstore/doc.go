// Package objstore is what a key-value store needs of an object store: S3 and what speaks its protocol, others by
// adapters, a directory, or memory. It needs the standard library alone.
package objstore
