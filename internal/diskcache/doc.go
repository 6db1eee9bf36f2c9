// Package diskcache keeps pages of immutable objects in a directory of the local disk, so that a store in an object
// store reads again without a request. A lost page is just read again: a [Cache] returns no errors of its own.
package diskcache
