package main

// examples are examples of the program, and of commands whose help has none of its own.
var examples = map[string]string{
	"":           "kvbench readamp\nkvbench run --engine pebble --filter own:10",
	"trace info": "kvbench trace info app.trace",
	"readamp":    "kvbench readamp\nkvbench readamp --keys 100000 --json result.json",
	"compare":    "kvbench compare --engine siftkv,pebble --keys 100000",
	"scale":      "kvbench scale --keys 1000000",
	"filters":    "kvbench filters --keys 100000",
	"objects":    "kvbench objects --keys 100000",
}
