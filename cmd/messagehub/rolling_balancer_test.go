package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// probeEvery is the interval at which a hub is probed.
const probeEvery = 100 * time.Millisecond

// A balancer sends requests to the ready hubs in turn, like a load balancer.
type balancer struct {
	client  *http.Client
	stop    context.CancelFunc
	probing sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	hubs    []balancedHub
	next    int
}

// A balancedHub is a hub behind a balancer.
type balancedHub struct {
	url     string // URL of the hub; "" if it receives no requests
	isReady bool
	running int // number of requests in progress
}

func newBalancer(hubs int) *balancer {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	b := &balancer{client: &http.Client{Transport: transport, Timeout: patience}, hubs: make([]balancedHub, hubs)}
	b.changed = sync.NewCond(&b.mu)
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	for i := range hubs {
		b.probing.Go(func() { b.probe(ctx, i) })
	}
	return b
}

func (b *balancer) close() {
	b.stop()
	b.probing.Wait()
	b.client.CloseIdleConnections()
}

// probe repeatedly checks whether a hub is ready.
func (b *balancer) probe(ctx context.Context, i int) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		b.mu.Lock()
		url := b.hubs[i].url
		b.mu.Unlock()
		if url == "" {
			continue
		}
		isReady := b.isReady(ctx, url)
		b.mu.Lock()
		if b.hubs[i].url == url {
			b.hubs[i].isReady = isReady
			b.changed.Broadcast()
		}
		b.mu.Unlock()
	}
}

func (b *balancer) isReady(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// pick waits for a ready hub and returns its URL. The caller must call done
// after the request.
func (b *balancer) pick() (url string, done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for range b.hubs {
			i := b.next % len(b.hubs)
			b.next++
			if h := &b.hubs[i]; h.isReady && h.url != "" {
				h.running++
				return h.url, func() { b.leave(i) }
			}
		}
		b.changed.Wait()
	}
}

func (b *balancer) leave(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hubs[i].running--
	b.changed.Broadcast()
}

// addHub adds a hub, which receives requests after its first successful probe.
func (b *balancer) addHub(i int, url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hubs[i].url, b.hubs[i].isReady = url, true
	b.changed.Broadcast()
}

// removeHub removes a hub, and waits until its requests have ended.
func (b *balancer) removeHub(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hubs[i].url, b.hubs[i].isReady = "", false
	for b.hubs[i].running > 0 {
		b.changed.Wait()
	}
}
