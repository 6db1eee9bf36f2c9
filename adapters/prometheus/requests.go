package siftprometheus

import "github.com/siftkv/siftkv/objstore"

const callsHelp = "Calls to the object store, by what they came to: ok, failed, or unknown."

// figuresOfRequests returns the figures of a kind of requests to an object store: calls have a label for their outcome.
func figuresOfRequests(c objstore.Count) []figure {
	return []figure{
		counter("object_calls_total", callsHelp, c.Calls-c.Failed).with("outcome", "ok"),
		counter("object_calls_total", callsHelp, c.Failed-c.Unknown).with("outcome", "failed"),
		counter("object_calls_total", callsHelp, c.Unknown).with("outcome", "unknown"),
		counter("object_requests_total", "Requests that were sent to the object store, and are billed.", c.Requests),
		counter("object_retries_total", "Requests to the object store that repeated one that failed.", c.Retries),
		counter("object_hedges_total", "Requests to the object store that raced with a slow one.", c.Hedges),
		counter("object_throttled_total", "Requests that the object store refused for coming too fast.", c.Throttled),
		counter("object_bytes_total", "Bytes of objects: received by get, sent by put and put-if-absent.", c.Bytes),
	}
}
