// Package receivers serves the receivers of webhooks that a benchmark measures with, and a
// relay: the least that a hub which keeps nothing would do for the same calls.
//
// A [Server] counts the first call for each event at each of its receivers, and how long
// after the event was due it came. It serves on a free loopback port until Close.
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

// A Server serves receivers: /0, /1 and so on answer 204 at once, and /hang not before the
// caller gives up. /slow answers late.
type Server struct {
	url    string
	server *http.Server
	life   sync.WaitGroup
	slow   slowReceiver

	mu        sync.Mutex
	due       map[string]time.Time // by event
	first     map[eventCall]bool
	latencies *load.Latencies
	left      int // calls until all is closed
	all       chan struct{}
}

type eventCall struct{ receiver, event string }

// A notice is what a call says.
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
		_, _ = io.Copy(io.Discard, io.LimitReader(req.Body, maxBody)) // else the end of the connection is not noticed
		<-req.Context().Done()
	})
	routes.Handle("/slow", &s.slow)
	routes.HandleFunc("/{receiver}", s.receiveEvent)
	routes.HandleFunc("/watch/{receiver}", s.countNotification)
	s.server = &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute}
	s.life.Go(func() { _ = s.server.Serve(listener) }) // until Close
	return s, nil
}

// Close ends the server and the calls that hang.
func (s *Server) Close() error {
	err := s.server.Close()
	s.life.Wait()
	return err
}

// URL returns where the n-th receiver is called.
func (s *Server) URL(n int) string { return s.url + "/" + strconv.Itoa(n) }

// HangingURL returns where the receiver is called that does not answer.
func (s *Server) HangingURL() string { return s.url + "/hang" }

// Expect forgets what has come. The channel is closed once calls first calls have come.
func (s *Server) Expect(calls int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due, s.first, s.latencies = make(map[string]time.Time), make(map[eventCall]bool), load.NewLatencies()
	s.left, s.all = calls, make(chan struct{})
	return s.all
}

// Due notes when an event was due. It is called before the event is published.
func (s *Server) Due(event string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[event] = at
}

// Latencies returns those of the first calls since Expect, once all have come.
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
		return // one of an earlier measurement, or a repeated call
	}
	s.first[c] = true
	s.latencies.Record(now.Sub(due))
	if s.left--; s.left == 0 {
		close(s.all)
	}
}
