package hubtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/cmd/hubtest"
)

// A bundle of the benchmark has 2,048 events of 25 KB. This is 50 MB, the
// maximum size of a bundle.
const (
	bundleEvents = 2048
	payloadBytes = 25 << 10
	bundleBytes  = bundleEvents * payloadBytes
	// consumerMemory is the maximum memory of a process that consumes one of
	// these bundles.
	consumerMemory = 64 << 20
)

// consumerVariable is the environment variable with the URL of a hub. A process
// of this test that finds the variable consumes a bundle from the hub.
const consumerVariable = "HUBTEST_CONSUME"

func TestMain(m *testing.M) {
	if url := os.Getenv(consumerVariable); url != "" {
		if err := consumeOne(context.Background(), url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		fmt.Println(memory.Sys) // the maximum, because Sys never decreases
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// announceBundles announces the events of n bundles of the benchmark.
func announceBundles(t testing.TB, hub *hubtest.Hub, n int) {
	t.Helper()
	payload, err := json.Marshal(strings.Repeat("x", payloadBytes-600)) // the other members of an event are about 600 bytes
	require.NoError(t, err)
	const batch = 256
	for range n * bundleEvents / batch {
		events := make([]hubclient.Event, batch)
		for i := range events {
			events[i] = hubclient.Event{
				ID: uuid.NewString(), Recipient: actor, Origin: "TimeSeries", ContentType: "measured-data",
				DocumentType: "D18", SupportsBundling: true, Weight: 25, Payload: payload,
			}
		}
		_, err := hub.Client().Announce(t.Context(), events)
		require.NoError(t, err)
	}
}

// consumeOne consumes one bundle with package hubclient, and reads its body.
func consumeOne(ctx context.Context, url string) error {
	client, err := hubclient.New(hubclient.Options{URL: url})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	size := int64(0)
	err = client.Consume(ctx, actor, func(_ context.Context, b *hubclient.Bundle) (err error) {
		size, err = io.Copy(io.Discard, b)
		if err == nil {
			cancel()
		}
		return err
	})
	return checkSize(size, err)
}

func checkSize(size int64, err error) error {
	if err == nil && (size < bundleBytes*9/10 || size > bundleBytes*11/10) {
		err = fmt.Errorf("the bundle has %d bytes, want some %d", size, bundleBytes)
	}
	return err
}

// consumeOverHTTP consumes one bundle with plain HTTP.
func consumeOverHTTP(ctx context.Context, url string) error {
	call := func(method, path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, url+path, http.NoBody)
		if err != nil {
			return nil, err
		}
		req.Header.Set("X-Actor-Id", actor)
		req.Header.Set("Accept-Encoding", "identity")
		resp, err := http.DefaultClient.Do(req)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s %s: %s", method, path, resp.Status)
			_ = resp.Body.Close()
		}
		return resp, err
	}
	resp, err := call(http.MethodGet, "/v1/peek")
	if err != nil {
		return err
	}
	size, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err := checkSize(size, err); err != nil {
		return err
	}
	resp, err = call(http.MethodDelete, "/v1/dequeue/"+resp.Header.Get("MessageId"))
	if err != nil {
		return err
	}
	http.DefaultClient.CloseIdleConnections()
	return resp.Body.Close()
}

func TestConsume_StreamsABundleOf50MB(t *testing.T) {
	hub := hubtest.Start(t)
	announceBundles(t, hub, 1)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), consumerVariable+"="+hub.URL)
	out, err := cmd.Output()
	require.NoError(t, err)
	var memory int
	_, err = fmt.Sscan(string(out), &memory)
	require.NoError(t, err)
	require.LessOrEqual(t, memory, consumerMemory)
	t.Logf("%d MB of memory", memory>>20)
}

// BenchmarkConsume compares the fastest run of Consume with the fastest run over
// plain HTTP, for bundles of 50 MB.
func BenchmarkConsume(b *testing.B) {
	hub := hubtest.Start(b)
	fastest := map[bool]time.Duration{true: time.Hour, false: time.Hour}
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		announceBundles(b, hub, 2)
		b.StartTimer()
		for _, isBare := range []bool{n%2 == 0, n%2 == 1} {
			consume := consumeOne
			if isBare {
				consume = consumeOverHTTP
			}
			began := time.Now()
			require.NoError(b, consume(b.Context(), hub.URL))
			fastest[isBare] = min(fastest[isBare], time.Since(began))
		}
	}
	b.ReportMetric(fastest[false].Seconds()/fastest[true].Seconds(), "times-bare-HTTP")
	b.SetBytes(2 * bundleBytes)
}
