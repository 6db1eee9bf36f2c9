// Package objstore is what a key-value store needs of an object store: S3 and servers with its protocol, others by
// adapters, a directory, or memory. It needs the standard library only.
//
// A [Store] reads ranges of objects, writes objects under names that are never used again, lists and deletes them. One
// call decides: of all that create a key with PutIfAbsent, one wins. A log of numbered objects that are created so has
// one history, with any number of writers.
//
// [NewMem] and [OpenDir] keep objects in memory and in a directory. Package objstore/s3, in a module of its own, has a
// client of S3. [Sub] makes a store of a part of another one.
//
// # Trust
//
// Some servers and gateways ignore the condition of a conditional put. [CheckConditional] finds out; a program calls
// it before it keeps anything in a store that it does not know.
//
// # Lost replies
//
// A write that is interrupted may have been performed, or may be later: its error then matches [ErrUnknown]. Put and
// Delete can be repeated. [Commit] repeats PutIfAbsent, and tells the caller's object from another's by its content.
//
// # What it costs
//
// Object stores charge for requests. [WithCounters] counts them, with the retries, parts and hedged reads that only the
// client of the server sees: it reports them to the [Meter] in the context of the call.
//
// # Implementations
//
// Package objstoretest tests that an implementation keeps the contract, and injects faults for tests of code that uses
// one. Implementations check keys with [CheckKey] and return an [Error] for every failure except io.EOF.
package objstore
