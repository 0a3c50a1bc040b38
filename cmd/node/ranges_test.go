package node_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// A meteredStore counts store requests made for clients' requests, and their
// request units. It does not count the node's background requests, such as
// those of the survey.
type meteredStore struct {
	next policy.Transporter

	mu       sync.Mutex
	requests int
	units    float64
}

type clientRequestKey struct{}

// markRequests returns a handler that marks the store requests made by next, so
// that meteredStore counts them.
func (m *meteredStore) markRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientRequestKey{}, true)))
	})
}

func (m *meteredStore) Do(req *http.Request) (*http.Response, error) {
	resp, err := m.next.Do(req)
	if isOfClient := req.Context().Value(clientRequestKey{}) != nil; err == nil && isOfClient {
		charge, _ := strconv.ParseFloat(resp.Header.Get("x-ms-request-charge"), 64)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requests++
		m.units += charge
	}
	return resp, err
}

// reset returns the counts since the previous call, and sets them to zero.
func (m *meteredStore) reset() (requests int, units float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests, units = m.requests, m.units
	m.requests, m.units = 0, 0
	return requests, units
}

// A rangeSet is a named function that returns Range headers for a body of a
// given size.
type rangeSet struct {
	name string
	make func(size int) []string
}

// repeatRange returns 16 ranges, the maximum that the hub accepts.
func repeatRange(one func(i int) string) []string {
	ranges := make([]string, 16)
	for i := range ranges {
		ranges[i] = one(i)
	}
	return ranges
}

var adversarialRanges = []rangeSet{
	{"one byte each, descending", func(size int) []string {
		return repeatRange(func(i int) string { at := size - 1 - i*(size/16); return fmt.Sprintf("%d-%d", at, at) })
	}},
	{"one byte each, ascending", func(size int) []string {
		return repeatRange(func(i int) string { at := i * (size / 16); return fmt.Sprintf("%d-%d", at, at) })
	}},
	{"the last byte, 16 times", func(size int) []string {
		return repeatRange(func(int) string { return fmt.Sprintf("%d-%d", size-1, size-1) })
	}},
	{"suffixes that overlap", func(int) []string {
		return repeatRange(func(i int) string { return fmt.Sprintf("-%d", 16+i) })
	}},
	{"the end and the beginning by turns", func(size int) []string {
		return repeatRange(func(i int) string {
			if i%2 == 0 {
				return fmt.Sprintf("%d-%d", size-100-i, size-100)
			}
			return fmt.Sprintf("%d-%d", i, i+50)
		})
	}},
	{"long ones, descending", func(size int) []string {
		return repeatRange(func(i int) string { at := (15 - i) * (size / 16); return fmt.Sprintf("%d-%d", at, at+size/16-1) })
	}},
	{"more than 16", func(size int) []string {
		return append(repeatRange(func(i int) string { return fmt.Sprintf("%d-%d", size-1-i, size-1-i) }), "0-0")
	}},
}

func TestRanges_CostNoMoreThanTheWholeBody(t *testing.T) {
	var store meteredStore
	n, _ := start(t, settings(""), node.Options{SurveyEvery: time.Millisecond, WrapHandler: store.markRequests, WrapTransport: func(next policy.Transporter) policy.Transporter {
		store.next = next
		return &store
	}})
	const events = 2_000 // enough for about 20 pages
	for batch := range events / 200 {
		list := make([]string, 200)
		for i := range list {
			list[i] = fmt.Sprintf(`{"id":"00000000-0000-4000-8000-%012d","recipient":"a","origin":"Charges","contentType":"c",`+
				`"documentType":"d","supportsBundling":true,"weight":1,"payload":%q}`, 200*batch+i, strings.Repeat("x", 200))
		}
		status, answer := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", "["+strings.Join(list, ",")+"]")
		require.Equal(t, 202, status, answer)
	}
	first, body := get(t, n.URL()+"/v1/peek")
	require.Equal(t, 200, first.StatusCode)
	require.Equal(t, events, strings.Count(body, `"sequence":`))
	bundle := n.URL() + "/v1/bundles/" + first.Header.Get("MessageId")
	store.reset()
	_, again := get(t, bundle)
	require.Equal(t, body, again)
	wholeRequests, wholeUnits := store.reset()
	require.Positive(t, wholeRequests)

	for _, tc := range adversarialRanges {
		t.Run(tc.name, func(t *testing.T) {
			set := tc.make(len(body))
			resp, text := get(t, bundle, "Range", "bytes="+strings.Join(set, ","))
			requests, units := store.reset()
			t.Logf("%d requests of %.1f RU; the whole body: %d requests of %.1f RU", requests, units, wholeRequests, wholeUnits)
			require.LessOrEqual(t, units, 1.5*wholeUnits)
			require.LessOrEqual(t, float64(requests), 1.5*float64(wholeRequests))
			if resp.StatusCode == http.StatusOK {
				require.Equal(t, body, text)
				return
			}
			require.Equal(t, http.StatusPartialContent, resp.StatusCode)
		})
	}
}
