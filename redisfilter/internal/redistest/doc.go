// Package redistest starts Redis servers for tests: real ones, as processes on loopback ports that
// end with the test, and a stand-in inside the test's process where no redis-server is installed.
//
// With SIFTKV_REDIS=required in the environment a missing redis-server fails a test that would have used one.
package redistest
