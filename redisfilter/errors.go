package redisfilter

import "github.com/siftkv/siftkv/redisfilter/internal/conn"

// The errors of sets, and of packages owners and mirror, are matched by errors.Is. Each comes with the name of the
// set or the Redis key, and with its cause. If the context of a call is cancelled, the error matches context.Canceled
// and none of these; if its deadline passes, ErrUnavailable. The error of a Source is returned as it is.
var (
	// ErrIncomplete comes with "maybe": the set was not loaded yet, or lost keys, and cannot say no.
	ErrIncomplete = conn.ErrIncomplete

	// ErrUnavailable comes with "maybe": Redis did not answer, or not in time, or it is not known whether the server
	// that answered is the one that was trusted.
	ErrUnavailable = conn.ErrUnavailable

	// ErrRefused comes with "maybe": Redis answers, and refuses the program's commands until a person changes a
	// setting. The reason is a password, a permission, a command that the server lacks, or the address of a replica
	// or of one node of a cluster. ErrRefused does not match ErrUnavailable: trying again is no use. A client of
	// Sentinels or of a cluster, or with a Dialer, finds the new master by itself, so that a replica's READONLY is
	// ErrUnavailable there.
	ErrRefused = conn.ErrRefused

	// ErrForeign comes with "maybe": Redis holds something under a key of the set that no set put there.
	ErrForeign = conn.ErrForeign

	// ErrMismatch means that a set of the name exists that was made otherwise, in what no load changes. The error
	// names it.
	ErrMismatch = conn.ErrMismatch

	// ErrDropped means that a program dropped the set.
	ErrDropped = conn.ErrDropped

	// ErrFull means that a cuckoo set has no room for a key. The key was not added: do not commit its row.
	ErrFull = conn.ErrFull

	// ErrTooManyCopies means that a cuckoo set has a key as often as it can. Its last copy was not added.
	ErrTooManyCopies = conn.ErrTooManyCopies

	// ErrClosed means that the set or its client was closed.
	ErrClosed = conn.ErrClosed
)
