package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// These tests are the broker's acceptance cases about deliveries. Their names
// contain the numbers from api/broker/CASES.md, which lists all cases.

// A shownJob is a job in a response of the hub.
type shownJob struct {
	ID, Message, Status, RetriggerURL string
	Attempts                          int
	History                           []struct{ Status int }
}

// deadLetters returns the dead letters of a consumer.
func deadLetters(t *testing.T, n *node.Node, consumer string) []shownJob {
	t.Helper()
	status, body := send(t, n, http.MethodGet, "/broker/channel/prices/consumer/"+consumer+"/dlq", "", "", "X-Broker-Consumer-Token", "of-"+consumer)
	require.Equal(t, http.StatusOK, status, body)
	var list struct{ DeadLetters []shownJob }
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	return list.DeadLetters
}

// failFirstCalls returns a receiver that answers the first calls for each
// message with status, and later calls with success.
func failFirstCalls(calls, status int) func(*receivedCall) int {
	var mu sync.Mutex
	failed := make(map[string]int)
	return func(c *receivedCall) int {
		mu.Lock()
		defer mu.Unlock()
		id := c.header.Get("X-Broker-Message-Id")
		if failed[id] >= calls {
			return http.StatusOK
		}
		failed[id]++
		return status
	}
}

func TestCase31And32_DeadLettersAreListedAndRetriggeredByTheirConsumer(t *testing.T) {
	shop, other := startReceiver(t, failFirstCalls(3, http.StatusInternalServerError)), startReceiver(t, nil)
	n, stop := start(t, brokerSettings(t.TempDir()), node.Options{})
	putChannel(t, n, map[string]string{"shop": shop.URL, "other": other.URL})
	paths := []string{broadcast(t, n, "1"), broadcast(t, n, "2")}
	require.Eventually(t, func() bool { return len(deadLetters(t, n, "shop")) == 2 }, 10*time.Second, 5*time.Millisecond)
	require.Empty(t, deadLetters(t, n, "other"))
	for i, dead := range deadLetters(t, n, "shop") {
		require.Equal(t, "Dead", dead.Status)
		require.Equal(t, paths[i], "/broker/channel/prices/message/"+dead.Message)
		require.Equal(t, 3, dead.Attempts)
		require.Len(t, dead.History, 3)
		require.Equal(t, 500, dead.History[2].Status)
		for creds, want := range map[[2]string]int{
			{"X-Broker-Consumer-Token", "of-other"}: 403, {"X-Broker-Channel-Token", "of-the-channel"}: 401, {"X-Broker-Consumer-Token", "of-shop"}: 202,
		} {
			status, body := send(t, n, http.MethodPost, dead.RetriggerURL, "", "", creds[0], creds[1])
			require.Equal(t, want, status, body)
		}
	}
	for _, path := range paths {
		require.Eventually(t, func() bool {
			_, jobs := statuses(t, n, path)
			return jobs["shop"] == "Delivered"
		}, 10*time.Second, 5*time.Millisecond)
	}
	require.Empty(t, deadLetters(t, n, "shop"))
	require.NoError(t, stop())
}

func TestCase39_AConsumerThatFailsIsRetriedAndHarmsNoOther(t *testing.T) {
	cfg := brokerSettings(t.TempDir())
	cfg.Broker.RetryDelay = time.Hour
	n, stop := start(t, cfg, node.Options{})
	receivers, callbacks := make(map[string]*callReceiver), make(map[string]string)
	for i := range 15 {
		name := fmt.Sprintf("c-%02d", i)
		receivers[name] = startReceiver(t, nil)
		callbacks[name] = receivers[name].URL
	}
	receivers["c-07"].set(func(*receivedCall) int { return http.StatusBadGateway })
	putChannel(t, n, callbacks)
	path := broadcast(t, n, "x", "Content-Type", "text/csv")
	for name, r := range receivers {
		c := <-r.calls
		require.Equal(t, "x", string(c.body))
		require.Equal(t, "text/csv", c.header.Get("Content-Type"))
		require.Equal(t, "of-"+name, c.header.Get("X-Broker-Consumer-Token"))
		require.Equal(t, "prices", c.header.Get("X-Broker-Channel-Id"))
		require.Equal(t, name, c.header.Get("X-Broker-Consumer-Id"))
		require.NotEmpty(t, c.header.Get("Webhook-Id"))
		require.NotEmpty(t, c.header.Get("User-Agent"))
	}
	require.Eventually(t, func() bool {
		message, jobs := statuses(t, n, path)
		delivered := 0
		for _, status := range jobs {
			if status == "Delivered" {
				delivered++
			}
		}
		return message == "Out-for-delivery" && delivered == 14 && jobs["c-07"] == "Retry-Delivery"
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, stop())
}

// For comparison, the original system needs 2N + 8 seconds for N messages,
// because it pauses for whole seconds between attempts.
func TestCase62_BatchesReachFiveConsumersThatFailTwice(t *testing.T) {
	n, stop := start(t, brokerSettings(t.TempDir()), node.Options{})
	receivers, callbacks := make(map[string]*callReceiver), make(map[string]string)
	for i := range 5 {
		name := fmt.Sprintf("c-%d", i)
		receivers[name] = startReceiver(t, failFirstCalls(2, http.StatusNotFound))
		callbacks[name] = receivers[name].URL
	}
	putChannel(t, n, callbacks)
	sent := 0
	for _, batch := range []int{1, 10, 100} {
		want := make(map[string]bool)
		for range batch {
			sent++
			want[fmt.Sprintf("message %d", sent)] = true
			broadcast(t, n, fmt.Sprintf("message %d", sent), "Content-Type", "text/x-case")
		}
		for _, r := range receivers {
			got := make(map[string]int)
			for range 3 * batch {
				c := <-r.calls
				require.Equal(t, "text/x-case", c.header.Get("Content-Type"))
				require.True(t, want[string(c.body)], string(c.body))
				require.Equal(t, fmt.Sprint(got[string(c.body)]), c.header.Get("X-Broker-Message-Attempt"))
				got[string(c.body)]++
			}
			require.Len(t, got, batch)
		}
	}
	for _, r := range receivers {
		require.Empty(t, r.calls, "a call too many")
	}
	require.NoError(t, stop())
}

func TestCase64_AConsumerThatAlwaysFailsIsCalledSixTimes(t *testing.T) {
	cfg := brokerSettings(t.TempDir())
	cfg.Broker.MaxRetry, cfg.Broker.RetryDelay = 5, 10*time.Millisecond
	r := startReceiver(t, func(*receivedCall) int { return http.StatusNotFound })
	n, stop := start(t, cfg, node.Options{})
	putChannel(t, n, map[string]string{"shop": r.URL})
	path := broadcast(t, n, "x")
	require.Eventually(t, func() bool { return len(deadLetters(t, n, "shop")) == 1 }, 20*time.Second, 10*time.Millisecond)
	require.Len(t, r.calls, 6)
	require.Len(t, deadLetters(t, n, "shop")[0].History, 6)
	r.set(nil)
	status, body := send(t, n, http.MethodPost, path+"/re-trigger", "", "", "X-Broker-Admin-Token", "token-of-the-operators")
	require.Equal(t, http.StatusAccepted, status, body)
	require.Eventually(t, func() bool {
		_, jobs := statuses(t, n, path)
		return jobs["shop"] == "Delivered"
	}, 10*time.Second, 5*time.Millisecond)
	require.Empty(t, deadLetters(t, n, "shop"))
	require.NoError(t, stop())
}

func TestPeekAndCalls_DeliverEachMessageOnce(t *testing.T) {
	cfg := brokerSettings(t.TempDir())
	cfg.Broker.RetryDelay = time.Hour // a failed job waits until the consumer peeks
	r := startReceiver(t, func(*receivedCall) int { return http.StatusInternalServerError })
	n, stop := start(t, cfg, node.Options{})
	putChannel(t, n, map[string]string{"shop": r.URL})
	path := broadcast(t, n, "x")
	<-r.calls
	consumer := "/broker/channel/prices/consumer/shop"
	var bundle struct {
		Bundle, DequeueURL string
		Messages           []struct{ ID, Payload string }
	}
	require.Eventually(t, func() bool {
		status, body := send(t, n, http.MethodGet, consumer+"/peek", "", "", "X-Broker-Consumer-Token", "of-shop")
		if status == http.StatusNoContent {
			return false // the failed attempt is not stored yet
		}
		require.Equal(t, http.StatusOK, status, body)
		require.NoError(t, json.Unmarshal([]byte(body), &bundle))
		return true
	}, 10*time.Second, 5*time.Millisecond)
	require.Len(t, bundle.Messages, 1)
	require.Equal(t, "x", bundle.Messages[0].Payload)
	require.Equal(t, path, "/broker/channel/prices/message/"+bundle.Messages[0].ID)
	_, jobs := statuses(t, n, path)
	require.Equal(t, "Retry-In-flight", jobs["shop"])
	for range 2 { // a repeated Dequeue must succeed too
		status, body := send(t, n, http.MethodDelete, bundle.DequeueURL, "", "", "X-Broker-Consumer-Token", "of-shop")
		require.Equal(t, http.StatusNoContent, status, body)
	}
	_, jobs = statuses(t, n, path)
	require.Equal(t, "Delivered", jobs["shop"])
	status, _ := send(t, n, http.MethodGet, consumer+"/peek", "", "", "X-Broker-Consumer-Token", "of-shop")
	require.Equal(t, http.StatusNoContent, status)
	status, body := send(t, n, http.MethodDelete, consumer+"/dequeue/another", "", "", "X-Broker-Consumer-Token", "of-shop")
	require.Equal(t, http.StatusNotFound, status, body)
	require.Empty(t, r.calls)
	require.NoError(t, stop())
}
