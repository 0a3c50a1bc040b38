// Package receivers provides webhook receivers for benchmarks, and a relay that makes the same
// calls as a hub and stores nothing.
//
// A [Server] counts the first call for each event at each of its receivers, and measures
// the time from the event's due time to the call. It serves on a free loopback port until
// Close.
package receivers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/load"
)

// maxBody is the limit for the body of a call.
const maxBody = 1 << 20

// A Server serves receivers: /0, /1 and so on respond with 204 immediately, /slow responds late,
// and /hang does not respond until the caller disconnects.
type Server struct {
	url    string
	server *http.Server
	life   sync.WaitGroup
	slow   slowReceiver

	mu        sync.Mutex
	due       map[string]time.Time // due times by event
	first     map[eventCall]bool
	latencies *load.Latencies
	left      int // number of first calls that are still expected
	all       chan struct{}
}

type eventCall struct{ receiver, event string }

// A notice is the body of a call.
type notice struct {
	Event struct {
		ID string `json:"id"`
	} `json:"event"`
}

// Serve starts a server.
func Serve(ctx context.Context) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{url: "http://" + listener.Addr().String()}
	s.slow = slowReceiver{calls: make(map[string]int), more: make(chan struct{}, 1)}
	s.Expect(0)
	routes := http.NewServeMux()
	routes.HandleFunc("/hang", func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, io.LimitReader(req.Body, maxBody)) // without this read, the handler would not notice a disconnect
		<-req.Context().Done()
	})
	routes.Handle("/slow", &s.slow)
	routes.HandleFunc("/{receiver}", s.receiveEvent)
	routes.HandleFunc("/watch/{receiver}", s.countNotification)
	s.server = &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute}
	s.life.Go(func() { _ = s.server.Serve(listener) }) // Serve returns after Close
	return s, nil
}

// Close stops the server and ends hanging calls.
func (s *Server) Close() error {
	err := s.server.Close()
	s.life.Wait()
	return err
}

// URL returns the URL of the n-th receiver.
func (s *Server) URL(n int) string { return s.url + "/" + strconv.Itoa(n) }

// HangingURL returns the URL of the receiver that does not respond.
func (s *Server) HangingURL() string { return s.url + "/hang" }

// Expect resets the counts. It returns a channel that is closed after the given number
// of first calls.
func (s *Server) Expect(calls int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due, s.first, s.latencies = make(map[string]time.Time), make(map[eventCall]bool), load.NewLatencies()
	s.left, s.all = calls, make(chan struct{})
	return s.all
}

// Due records the due time of an event. It is called before the event is
// published.
func (s *Server) Due(event string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[event] = at
}

// Latencies returns the latencies of the first calls since Expect. All of these calls must have
// arrived.
func (s *Server) Latencies() *load.Latencies {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latencies
}

func (s *Server) receiveEvent(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	var n notice
	if err = errors.Join(err, json.Unmarshal(body, &n)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.noteCall(eventCall{req.PathValue("receiver"), n.Event.ID})
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) noteCall(c eventCall) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	due, ok := s.due[c.event]
	if !ok || s.first[c] {
		return // a call of an earlier measurement, or a repeated call
	}
	s.first[c] = true
	s.latencies.Record(now.Sub(due))
	if s.left--; s.left == 0 {
		close(s.all)
	}
}
