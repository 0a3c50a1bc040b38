package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// An order is a document of an adapter.
type order struct {
	ID      string `json:"id"`
	Shop    string `json:"shop"`
	State   string `json:"state"`
	WriteID string `json:"writeId"`
	client.Document
}

var orderDocument = client.DocumentKind{Name: "order", Format: 1}

func (*order) DocumentKind() client.DocumentKind { return orderDocument }

// A refused write is read back: the id of the last write shows whether an earlier attempt was applied.
func Example() {
	ctx := context.Background()
	engine, err := embedded.Open(embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	db, err := client.Connect(client.Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	containers := []client.ContainerSpec{{Name: "orders", PartitionKey: "/shop", KeyBytes: 64}}
	if err := db.Provision(ctx, containers); err != nil {
		log.Fatal(err)
	}
	orders, err := db.Container("orders")
	if err != nil {
		log.Fatal(err)
	}

	shop := client.New(db, client.Options{Containers: containers})
	call := shop.Begin("open order")
	opened := &order{ID: "7", Shop: "a", State: "open", WriteID: shop.NewID()}
	err = call.Retry(ctx, func() error {
		_, err := call.Put(ctx, orders, opened.Shop, opened.ID, "", opened)
		if !client.IsRefused(err) {
			return err
		}
		var stored order
		if _, err := call.Read(ctx, orders, opened.Shop, opened.ID, &stored); client.IsNotFound(err) {
			return client.ErrStale
		} else if err != nil {
			return err
		}
		if stored.WriteID != opened.WriteID {
			return fmt.Errorf("order %s exists", stored.ID)
		}
		return nil
	})
	fmt.Println(call.Outcome("open order", err))
	fmt.Println(shop.CheckContainers(ctx))
	// Output:
	// <nil>
	// <nil>
}
