package webhook_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
)

// server starts a server on this machine, and returns the server and a client that may call it.
func server(t *testing.T, http2 bool, handler http.HandlerFunc) (*httptest.Server, *webhook.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	o := webhook.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: !http2}
	if http2 {
		s.EnableHTTP2 = true
		s.StartTLS()
		o.RootCAs = x509.NewCertPool()
		o.RootCAs.AddCert(s.Certificate())
	} else {
		s.Start()
	}
	c := webhook.New(o)
	t.Cleanup(s.Close)
	t.Cleanup(c.Close)
	return s, c
}

// answerLargeBody responds with 100 MB.
func answerLargeBody(w http.ResponseWriter, _ *http.Request) {
	for chunk, n := make([]byte, 32<<10), 0; n < 100<<20; n += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
	floods.Add(1)
}

// floods counts the responses of 100 MB that answerLargeBody has sent completely.
var floods atomic.Int64

// answerCompressedZeros responds with n compressed zero bytes, even if the request does not accept
// compression.
func answerCompressedZeros(t *testing.T, n int) http.HandlerFunc {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(make([]byte, n))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "identity" {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(b.Bytes())
	}
}

func TestALongAnswer_TakesLittleMemory(t *testing.T) {
	handlers := map[string]http.HandlerFunc{"100 MB": answerLargeBody}
	if !hasRaceDetector { // with the race detector, the handler takes most of the measured time
		handlers["gzip bomb"] = answerCompressedZeros(t, 100<<20)
	}
	for _, http2 := range []bool{false, true} {
		for name, handler := range handlers {
			t.Run(fmt.Sprintf("%s, HTTP/2 %t", name, http2), func(t *testing.T) {
				s, c := server(t, http2, handler)
				const calls = 32
				send(t, c, delivery(s.URL)) // this call warms up connections and code
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				var all sync.WaitGroup
				for range calls {
					all.Go(func() {
						r, err := c.Send(context.WithoutCancel(t.Context()), delivery(s.URL))
						if err != nil || r.Answer.Status != 0 || len(r.Body) > webhook.MaxBody || !strings.Contains(r.Answer.Error, "more than 65536 bytes") {
							t.Errorf("%+v, %v", r.Answer, err)
						}
					})
				}
				all.Wait()
				runtime.ReadMemStats(&after)
				each := (after.TotalAlloc - before.TotalAlloc) / calls
				t.Logf("%d KB for each call, server included", each>>10)
				require.Less(t, each, uint64(1<<20))
				require.Zero(t, floods.Load())
			})
		}
	}
}

func TestACompressedAnswer_IsNotDecompressed(t *testing.T) {
	s, c := server(t, false, answerCompressedZeros(t, 10<<20))
	r := send(t, c, delivery(s.URL))
	require.Equal(t, http.StatusOK, r.Answer.Status)
	require.Less(t, len(r.Body), webhook.MaxBody, "of 10 MB")
}

func TestConnections_AreReused(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var protocol atomic.Int64
		var connections sync.Map
		s, c := server(t, http2, func(w http.ResponseWriter, r *http.Request) {
			protocol.Store(int64(r.ProtoMajor))
			connections.Store(r.RemoteAddr, true)
			if r.URL.Path == "/bad" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = w.Write(make([]byte, 60<<10))
		})
		for i := range 50 {
			r := send(t, c, delivery(s.URL+[]string{"/bad", "/good"}[i%2]))
			require.Equal(t, []int{500, 200}[i%2], r.Answer.Status)
			require.Len(t, r.Body, webhook.MaxBody)
		}
		n := 0
		connections.Range(func(any, any) bool { n++; return true })
		require.Equal(t, 1, n)
		require.Equal(t, map[bool]int64{false: 1, true: 2}[http2], protocol.Load())
	}
}

func TestAReset_IsAFailedAttempt(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		s, c := server(t, http2, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		r := send(t, c, delivery(s.URL))
		require.Zero(t, r.Answer.Status)
		require.Contains(t, r.Answer.Error, "look at the receiver's log")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, c := server(t, false, answerLargeBody)
	var serving sync.WaitGroup
	serving.Go(func() {
		conn, err := l.Accept()
		if err == nil {
			skipRequest(conn)
			err = errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	r := send(t, c, delivery("http://"+l.Addr().String()))
	require.Contains(t, r.Answer.Error, "look at the receiver's log")
	serving.Wait()
	require.NoError(t, l.Close())
	r = send(t, c, delivery("http://"+l.Addr().String()))
	require.Contains(t, r.Answer.Error, "the connection was refused")
}

func TestARealDial_IsGuarded(t *testing.T) {
	s, allowed := server(t, false, func(http.ResponseWriter, *http.Request) {})
	require.Equal(t, http.StatusOK, send(t, allowed, delivery(s.URL)).Answer.Status)
	c := webhook.New(webhook.Options{AllowHTTP: true})
	defer c.Close()
	r := send(t, c, delivery(s.URL))
	require.Equal(t, "the receiver has an address that may not be called; use a public address, or have operators add its range to the setting push.allow", r.Answer.Error)
	r = send(t, c, delivery(strings.Replace(s.URL, "127.0.0.1", "localhost", 1)))
	require.Contains(t, r.Answer.Error, "may not be called")
}

func TestTLS_IsVerified(t *testing.T) {
	s, c := server(t, true, func(http.ResponseWriter, *http.Request) {})
	require.Equal(t, http.StatusOK, send(t, c, delivery(s.URL)).Answer.Status)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	lookUp := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	reason := func(o webhook.Options, url string) string {
		o.Allow, o.LookUp = allow, lookUp
		c := webhook.New(o)
		defer c.Close()
		r := send(t, c, delivery(url))
		require.Zero(t, r.Answer.Status)
		return r.Answer.Error
	}
	require.Contains(t, reason(webhook.Options{}, s.URL), "an authority that the hub does not know")
	require.Contains(t, reason(webhook.Options{RootCAs: pool}, strings.Replace(s.URL, "127.0.0.1", "other.test", 1)), "the certificate is for another host")

	plain, _ := server(t, false, func(http.ResponseWriter, *http.Request) {})
	require.Contains(t, reason(webhook.Options{}, strings.Replace(plain.URL, "http:", "https:", 1)), "no TLS on this port")

	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.Config.ErrorLog = log.New(io.Discard, "", 0)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	defer old.Close()
	require.Contains(t, reason(webhook.Options{RootCAs: pool}, old.URL), "TLS 1.2 or later")

	expired := httptest.NewUnstartedServer(http.NotFoundHandler())
	expired.Config.ErrorLog = log.New(io.Discard, "", 0)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	expired.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	expired.StartTLS()
	defer expired.Close()
	own, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool.AddCert(own)
	require.Contains(t, reason(webhook.Options{RootCAs: pool}, expired.URL), "the certificate has expired")
}

func TestACallThatItsCallerEnds_IsNoAttempt(t *testing.T) {
	called := make(chan struct{})
	s, c := server(t, false, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the lost connection only while it reads
		close(called)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("the node stops")
	go func() {
		<-called
		cancel(stop)
	}()
	r, err := c.Send(ctx, delivery(s.URL))
	require.ErrorIs(t, err, stop)
	require.Zero(t, r)
	_, err = c.Send(ctx, delivery(s.URL))
	require.ErrorIs(t, err, stop)
}

func TestADeliveryThatCannotBeEncoded_IsAFailedAttempt(t *testing.T) {
	n := newNetwork(t)
	n.add("receiver.example", "8.8.8.8", respondWith("HTTP/1.1 204 x\r\n\r\n"))
	c := n.client(webhook.Options{})
	d := delivery("http://receiver.example/")
	d.Attachments = []byte("{")
	require.Contains(t, send(t, c, d).Answer.Error, "cannot be encoded")
	d = delivery("http://receiver.example/")
	d.Settings.Method = "PO ST"
	require.Contains(t, send(t, c, d).Answer.Error, "the method is not valid")
	require.Empty(t, n.dials)
}

func BenchmarkSend(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer s.Close()
	c := webhook.New(webhook.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	defer c.Close()
	d := delivery(s.URL)
	secret, err := webhook.ParseSecret(oldSecret)
	require.NoError(b, err)
	d.Secrets, d.HMACKey = []webhook.Secret{secret}, "key"
	b.ReportAllocs()
	for b.Loop() {
		if r, err := c.Send(b.Context(), d); err != nil || r.Answer.Status != http.StatusOK {
			b.Fatal(r, err)
		}
	}
}
