// Package redisfilter has sets that many processes share through Redis and that may say "maybe". A set guards a cache
// and a database: it tells a service without a query that a key is not there.
//
//	c, err := redisfilter.Open(ctx, &redis.UniversalOptions{Addrs: []string{"127.0.0.1:6379"}})
//	users, err := redisfilter.New(ctx, c, "users", 10_000_000, 0.01, &redisfilter.Options{Source: readUsers})
//	maybe, err := users.Contains(ctx, []byte(name)) // one trip, one command
//	if !maybe {
//		return errNoSuchUser // certain
//	}
//
// # What is promised
//
// "No" is certain: once Add of a key returned nil, every process that asks is told "maybe", whatever happens to
// Redis. A set may have been evicted, expired, flushed, half made, failed over to a replica that lacks the key, or
// restarted from an older file. Then it says "maybe" with an error that matches ErrIncomplete. If Redis is away, the
// answer is (true, ErrUnavailable), when the context's deadline ends, or at once while Redis is known to be away. If
// Redis answers and refuses, for a wrong password or a missing permission, it is (true, ErrRefused). A program that
// ignores the error fails open; one that returns it fails closed.
//
// "Maybe" is wrong for absent keys at the promised rate of false positives. It stays so however many keys a set gets
// whose Options.Growth is set.
//
// Three things are the program's own. Add must succeed before the row commits. Options.Grace must be at least the
// time between the two. And a master that goes on taking writes after another was promoted loses keys, and denies
// those that the other got. In a cluster, have a node timeout of two seconds or more. Outside of one, set
// min-replicas-to-write, and have min-replicas-max-lag three seconds below the time after which a replica is
// promoted: a master that takes no writes for want of replicas counts as away.
//
// One loss is noticed late: a value that COPY, RENAME or RESTORE put in the place of another by hand. The header of a
// value says which key it belongs to. Growing sets and those of owners check it with each operation, in their first
// layer, and a Mirror with each copy. Lookups in later layers, in sets of one size and in cuckoo sets read no header.
// Each process therefore looks at all values of its sets once a minute. For a set for more than 50 million keys the
// time between two looks is 4 ms for each partition. Until the next look, the set may deny keys of the replaced
// value. From then on, the process answers "maybe" and ErrForeign for the whole set until the next load, which begins
// at once if the set has a Source. Three things are not noticed: an older state of the same value, a value that a
// release without such headers made, and a replaced later layer of an owner's set.
//
// What moves one address from server to server, a proxy or a name, must cut the connections to the old one.
//
// # The sets
//
// Set is a blocked Bloom filter: keys are added, and never removed. It is made for a number of keys, or grows. Cuckoo
// takes removals as well, grows by its loads, and an add costs the server two to seven times as much. Set.Mirror
// answers most questions from a copy of the bits in the process, without a trip: see package mirror. Package owners
// has sets per owner and period, which expire: what a user has seen.
//
// # How it works
//
// A set lies in many Redis values of some 4 KB, its shards, spread over the slots of a cluster. All bits of a key are
// in one line of 64 bytes: a lookup reads it by one GETRANGE, and an add sets them by one BITFIELD. What was lost, or
// has never been loaded, becomes the set's next generation. All processes add to it while it is loaded from the Source,
// and take it into use together. A process says "no" only if it learned, at most 1.5 s ago, that the generation is in
// use and that the server is still the process that it was; it polls twice a second. The files of the package describe
// each part: lineage.go and build.go generations, view.go who may say "no", internal/chain growth, internal/config what
// processes agree about, internal/layout the bytes, and internal/nodes the servers.
//
// Keys are hashed by SipHash under a secret that is kept in Redis, so that a program that cannot read it finds no keys
// that the set takes for others; Options.PublicHash does without.
//
// Commands used are those of Redis 6.2 and later and of Valkey: scripts only by AddNew of growing sets, by sets of
// owners and by cuckoo sets.
package redisfilter
