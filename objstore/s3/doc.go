// Package s3 keeps the objects of an [objstore.Store] in a bucket of Amazon S3, or of a server that speaks its
// protocol.
//
// [OpenURL] takes s3://bucket/prefix, [Open] a [Config], and [New] a client of the AWS SDK that the caller has made.
// The first two find credentials, region and endpoint as all programs over that SDK do (environment, ~/.aws, single
// sign-on, web identity, roles of containers and machines). Credentials are never part of a URL or of an error: if a
// server repeats some, they are removed.
//
// # What the server must do
//
// It must honour If-None-Match: * of PutObject, which [objstore.CheckConditional] finds out, list in the order of the
// keys' bytes, and show at once what was written. Amazon S3 does, and so does versitygw, which the tests run. Directory
// buckets (S3 Express One Zone) do not sort, and listings of them fail. The rights needed are GetObject, PutObject,
// DeleteObject, AbortMultipartUpload and ListBucket; without the last one S3 replies 403 for missing objects.
//
// # Requests
//
// A request is repeated after an error that may pass: refusals for haste, most replies of 500 and above, broken
// connections, bodies that break off, and no reply in time. The pauses double, and are random in part. A try has as
// long as a slow line needs, but ends when nothing moves ([Options.Timeout]). The tries, and the requests at once, are
// bounded: to a server that has not replied to anything yet, a request is not repeated after 30 seconds, so that a
// wrong endpoint is reported soon. All requests are reported to the call's [objstore.Meter]; the SDK repeats none by
// itself.
//
// PutIfAbsent is the exception: it is repeated only if the server said that it did not do it. When its reply is lost
// or does not come in time, or says 409, the error matches [objstore.ErrUnknown]. If it finds an object after it was
// repeated, it compares contents: another content is ErrExists, its own is ErrUnknown, as another client may have
// written the same. [objstore.Commit] takes it from there.
//
// # Uploads
//
// Objects of more than [Options.PartSize] bytes go up in parts, several at once, fewer and smaller ones over a slow
// line. Nothing is there before the request that puts the parts together, and if that is not sent, because a part
// failed or the context ended, the error does not match ErrUnknown. An upload that failed is aborted, which Close waits
// for. A process that dies leaves parts that no listing shows and that are billed, as does a lost reply to the
// beginning of an upload. So give the bucket a lifecycle rule for incomplete multipart uploads
// (AbortIncompleteMultipartUpload, one day).
//
// # Checksums
//
// The signature of an upload covers the SHA-256 of its body, which servers check. The SDK's own checksums are switched
// off where S3 does not require them. They send bodies in chunks followed by a checksum, which some servers do not know
// and store unchanged. For range reads there is nothing to compare: the caller must check what it reads.
package s3
