// Package diskcache keeps pages of immutable objects in a directory of the local disk, so that a store in an object
// store reads again without a request. What it has lost it never had: a [Cache] returns no errors of its own.
package diskcache
