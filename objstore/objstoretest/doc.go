// Package objstoretest tests implementations of [objstore.Store], and what is built on them.
//
// [Run] and [RunClients] hold an implementation to the contract. [Faults] puts delays, lost replies, partitions and
// other troubles between a store and its user, by a rule: the same rule and seed give the same troubles.
package objstoretest
