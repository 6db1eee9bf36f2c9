// Outbox commits orders to a store and adds the events of each order to a stream of a Redis server. Whatever is killed
// meanwhile, no event is missing and none is there twice. From the root:
//
//	go run ./redisfilter/examples/outbox DIR HOST:PORT
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/kv"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: outbox DIR HOST:PORT")
	}
	client := redis.NewClient(&redis.Options{Addr: os.Args[2]})
	if err := run(context.Background(), os.Args[1], client); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string, client *redis.Client) (err error) {
	db, err := kv.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	slot, err := openOutbox(ctx, db)
	if err != nil {
		return err
	}
	defer slot.Close()
	for _, item := range []string{"bread", "milk", "eggs"} {
		if err := order(db, item); err != nil {
			return err
		}
	}
	if err := publish(ctx, db, slot, client); err != nil {
		return err
	}
	entries, err := client.XRange(ctx, stream, "-", "+").Result()
	for _, e := range entries {
		fmt.Println(e.Values["event"])
	}
	return err
}
