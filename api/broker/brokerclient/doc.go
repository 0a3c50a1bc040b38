// Package brokerclient is a client of the webhook broker's HTTP API for producers, consumers and
// operators. It does not import the hub.
//
// A producer publishes messages to a channel:
//
//	client, err := brokerclient.New(brokerclient.Options{
//		URL: "https://hub.example.org",
//		Credentials: brokerclient.Credentials{
//			ChannelToken: "…", ProducerID: "shop", ProducerToken: "…",
//		},
//	})
//	id, err := client.Publish(ctx, "orders", &brokerclient.Message{
//		ID: "order-4711-paid", ContentType: "application/json", Payload: payload,
//	})
//
// The hub calls a consumer with each message. [NewConsumer] returns the http.Handler that verifies the
// calls and passes the messages to a function:
//
//	consumer, err := brokerclient.NewConsumer(brokerclient.ConsumerOptions{Tokens: []string{"…"}},
//		func(ctx context.Context, d *brokerclient.Delivery) error {
//			return store(ctx, d.ID, d.Payload)
//		})
//	http.Handle("/orders", consumer)
//
// It can also fetch messages, by [Client.Peek] and [Client.Dequeue]; the hub does not call it with
// fetched messages. An operator registers producers, channels and consumers with [Client.Put], and
// reads messages and dead letters.
//
// # Repetitions
//
// A request that fails temporarily is repeated until [Options.Budget] is spent:
// the hub is busy (429), it or its store cannot be reached, or the answer was lost. All
// requests except two may be repeated: a message without an ID, and a re-trigger, are repeated
// only if the hub has certainly not begun them. So give each message an ID that is derived from
// its subject. Then a message is stored once, even if answers are lost, or if the producer
// stops before it reads the answer and sends the message again within 24 hours.
//
// A message is delivered at least once. [Delivery.ID] is the same in every attempt, so that a
// consumer can recognize a repetition.
//
// # Errors
//
// A request that the hub has refused fails with a [*Problem], with the status of the answer.
// Redirects are not followed, because requests carry tokens. No error contains a token.
package brokerclient
