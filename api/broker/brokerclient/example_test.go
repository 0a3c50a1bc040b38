package brokerclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/api/webhook"
)

func ExampleClient_Publish() {
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/broker/channel/orders/message/m0.17")
		w.WriteHeader(http.StatusCreated)
	}))
	defer hub.Close()

	client, err := brokerclient.New(brokerclient.Options{
		URL:         hub.URL,
		Credentials: brokerclient.Credentials{ChannelToken: "a", ProducerID: "shop", ProducerToken: "b"},
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	id, err := client.Publish(context.Background(), "orders", &brokerclient.Message{
		ID: "order-4711-paid", ContentType: "application/json", Payload: []byte(`{"order":4711}`),
	})
	fmt.Println(id, err)
	// Output: m0.17 <nil>
}

func ExampleNewConsumer() {
	consumer, err := brokerclient.NewConsumer(brokerclient.ConsumerOptions{Tokens: []string{"secret"}},
		func(_ context.Context, d *brokerclient.Delivery) error {
			fmt.Printf("%s of %s: %s\n", d.Message, d.Channel, d.Payload)
			return nil
		})
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(consumer)
	defer server.Close()

	// The hub calls the consumer with a message.
	hub := webhook.New(webhook.Options{AllowHTTP: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	defer hub.Close()
	_, err = hub.Call(context.Background(), &webhook.ConsumerCall{
		ID: "msg_1", CallbackURL: server.URL, Token: "secret", Channel: "orders", Message: "m0.17", Payload: []byte("paid"),
	})
	if err != nil {
		panic(err)
	}
	// Output: m0.17 of orders: paid
}
