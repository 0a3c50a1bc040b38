package domainclient_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// A domain announces data to the hub, produces the content when the hub requests it, and receives a
// notice when the actor has confirmed the bundle. The hub, the bus and the exchange run within the
// process. With Azure, only the connection string and the container client change.
func Example() {
	hub := openExampleHub()
	defer hub.close()

	domain, err := domainclient.New(domainclient.Options{Origin: "Charges", Connect: hub.connect, Exchange: hub.exchange})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer func() { _ = domain.Close(context.Background()) }()

	prices := map[uuid.UUID]string{uuid.MustParse("0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"): "0.25 DKK"}
	var running sync.WaitGroup
	running.Go(func() {
		err := domain.Serve(ctx, func(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
			ids, err := r.EventIDs(ctx)
			if err != nil {
				return nil, err
			}
			var b strings.Builder
			for _, id := range ids {
				price, ok := prices[id]
				if !ok {
					return nil, &domainclient.Failure{Reason: domainclient.DatasetNotFound, Description: id.String()}
				}
				fmt.Fprintf(&b, "%s: %s", id, price)
			}
			return strings.NewReader(b.String()), nil
		})
		if err != nil {
			log.Fatal(err)
		}
	})
	notices := make(chan string)
	running.Go(func() {
		err := domain.Notices(ctx, func(_ context.Context, n *domainclient.Notice) error {
			notices <- n.Recipient + " has confirmed " + n.ID
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	})

	for id := range prices {
		accepted, err := domain.Send(ctx, []domainclient.Event{{
			ID: id, Recipient: "5790001330552", ContentType: "PriceList", SupportsBundling: true, Weight: 1,
		}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("announced:", accepted)
	}
	fmt.Println("peeked:", hub.peek("5790001330552"))
	hub.dequeue("5790001330552")
	fmt.Println("notice:", <-notices)

	stop() // stops the domain and waits for its goroutines
	running.Wait()
	// Output:
	// announced: 1
	// peeked: 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41: 0.25 DKK
	// notice: 5790001330552 has confirmed bundle_5790001330552
}
