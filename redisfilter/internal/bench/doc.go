// Package bench compares sets with other filters: it has nothing but tests. It is a module of its own, so that
// redisfilter's go.mod does not name the modules that go-zero brings.
package bench
