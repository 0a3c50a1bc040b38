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
// The hub calls a consumer with each message. [NewConsumer] returns the http.Handler that verifies
// the calls and passes the messages to a function:
//
//	consumer, err := brokerclient.NewConsumer(brokerclient.ConsumerOptions{Tokens: []string{"…"}},
//		func(ctx context.Context, d *brokerclient.Delivery) error {
//			return store(ctx, d.ID, d.Payload)
//		})
//	http.Handle("/orders", consumer)
//
// A consumer can also fetch messages, by [Client.Peek] and [Client.Dequeue]. The hub does not call
// the consumer with fetched messages. An operator registers producers, channels and consumers with
// [Client.Put], and reads messages and dead letters.
//
// # Repetitions
//
// A request is repeated after a temporary failure until [Options.Budget] is exhausted. Temporary
// failures are: the hub is busy (429), the hub or its store cannot be reached, or the response was
// lost. Two requests are repeated only if the hub has certainly not begun them: publishing a
// message without an ID, and a re-trigger. So give each message an ID that is derived from its
// subject. The hub stores a message with an ID once, even if responses are lost, or if the producer
// stops before it reads the response and sends the message again within 24 hours.
//
// A message is delivered at least once. [Delivery.ID] is the same in every attempt, so a consumer
// can recognize a repetition.
//
// # Errors
//
// A request that the hub refuses fails with a [*Problem], which contains the status of the
// response. Redirects are not followed, because requests contain tokens. No error contains a token.
package brokerclient
