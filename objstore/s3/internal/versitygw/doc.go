// Package versitygw is empty. Its module pins versitygw, an S3 server over a directory, for the tests of the module
// above, which build it with `go tool`. It is a module of its own so that only those tests fetch what it needs.
package versitygw
