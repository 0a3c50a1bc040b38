package hubtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/hubclient"
)

// A domain sends an event twice. The hub stores the event once.
func Example_send() {
	hub, stop := startHub()
	defer stop()
	event := priceEvent("be4bc634-db0f-4b83-8d11-e4d38c5f2628", 1.5)
	for range 2 {
		announced, err := hub.Client().Announce(context.Background(), []hubclient.Event{event})
		exitOn(err)
		fmt.Printf("%d accepted, %d duplicates\n", announced.Accepted, announced.Duplicates)
	}
	// Output:
	// 1 accepted, 0 duplicates
	// 0 accepted, 1 duplicates
}

// An actor peeks twice. Both responses contain the same bundle, because the
// actor has not dequeued it.
func Example_peek() {
	hub, stop := startHub()
	defer stop()
	hub.Announce(exampleActor, "first", "second")
	ids := make(map[string]bool)
	for range 2 {
		b, err := hub.Client().Peek(context.Background(), exampleActor, hubclient.PeekOptions{})
		exitOn(err)
		ids[b.ID] = true
		fmt.Println(b.Type, countEvents(b))
		exitOn(b.Close())
	}
	fmt.Println("bundles:", len(ids))
	// Output:
	// NotifyValidatedMeasureData 2
	// NotifyValidatedMeasureData 2
	// bundles: 1
}

// An actor dequeues a bundle after it has stored the content. The queue is then
// empty.
func Example_dequeue() {
	hub, stop := startHub()
	defer stop()
	hub.Announce(exampleActor, "first")
	ctx := context.Background()
	b, err := hub.Client().Peek(ctx, exampleActor, hubclient.PeekOptions{})
	exitOn(err)
	_, err = io.Copy(io.Discard, b)
	exitOn(err)
	exitOn(b.Dequeue(ctx))
	_, err = hub.Client().Peek(ctx, exampleActor, hubclient.PeekOptions{})
	fmt.Println(errors.Is(err, hubclient.ErrNoData))
	// Output: true
}

// With a long poll, an actor waits for data instead of polling in a loop.
func Example_longPoll() {
	hub, stop := startHub()
	defer stop()
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		hub.Announce(exampleActor, "it comes while the actor waits, or just before")
	}()
	b, err := hub.Client().Peek(context.Background(), exampleActor, hubclient.PeekOptions{Wait: 20 * time.Second})
	exitOn(err)
	fmt.Println("events:", countEvents(b))
	exitOn(b.Close())
	<-announced
	// Output: events: 1
}

// An interrupted download is resumed after the last byte that was received.
func Example_resumedDownload() {
	hub, stop := startHub()
	defer stop()
	hub.Announce(exampleActor, strings.Repeat("x", 10_000))
	client := hub.NewClient(hubclient.Options{Transport: &breakingTransport{after: 4_000}})
	defer client.Close()
	b, err := client.Peek(context.Background(), exampleActor, hubclient.PeekOptions{})
	exitOn(err)
	b.Interrupted = func(_ error, received int64) { fmt.Printf("broke off after %d bytes\n", received) }
	n, err := io.Copy(io.Discard, b)
	exitOn(err)
	fmt.Println("complete:", n == b.Size)
	// Output:
	// broke off after 4000 bytes
	// complete: true
}

// A breakingTransport interrupts the first response body.
type breakingTransport struct {
	after    int64
	isBroken bool
}

func (t *breakingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || t.isBroken {
		return resp, err
	}
	t.isBroken = true
	resp.Body = brokenBody{io.MultiReader(io.LimitReader(resp.Body, t.after), failingReader{}), resp.Body}
	return resp, nil
}

// A brokenBody is a response body that fails after its first part.
type brokenBody struct {
	io.Reader
	io.Closer
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
