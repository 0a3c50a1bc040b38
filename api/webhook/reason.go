package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/messagehub/messagehub/domain"
)

var errLong = fmt.Errorf("the answer has more than %d bytes; answer with a short body or with 204", maxRead)

// A bodyError means that the body of a response ended too early.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "the body of the answer is not complete" }

func (e *bodyError) Unwrap() error { return e.err }

// A prepareError means that a call could not be prepared. Its text contains no secrets.
type prepareError struct{ text string }

func (e *prepareError) Error() string { return e.text }

// failureReason returns why a call failed and what the receiver's operator can do, in up to
// domain.MaxAttemptError bytes. It contains no part of the URL or the response. It also contains no
// address, because users must not learn the results of the hub's resolver.
func failureReason(err error, timeout time.Duration) string {
	text := failureText(err, timeout)
	return strings.ToValidUTF8(text[:min(len(text), domain.MaxAttemptError)], "")
}

func failureText(err error, timeout time.Duration) string {
	if _, ok := errors.AsType[*BlockedError](err); ok {
		return "the receiver has an address that may not be called; use a public address, or have operators add its range to the setting push.allow"
	}
	if prepare, ok := errors.AsType[*prepareError](err); ok {
		return prepare.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "the host was not found; check its DNS records"
		}
		return "the host could not be looked up; check its name servers"
	}
	op, ok := errors.AsType[*net.OpError](err)
	isDial := ok && op.Op == "dial"
	switch {
	case errors.Is(err, errLong):
		return errLong.Error()
	case errors.Is(err, errNoConnection):
		return fmt.Sprintf("no connection within %s; check that the receiver runs and that its firewall lets the hub in", timeout)
	case errors.Is(err, errTimeout):
		return fmt.Sprintf("no complete answer within %s; answer first and process the message then", timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused; start the receiver, or correct the port of the URL"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "the host cannot be reached; check its address and its network"
	}
	if text := tlsFailure(err); text != "" {
		return text
	}
	if isDial {
		return "no connection; check that the receiver runs and that its firewall lets the hub in"
	}
	text := err.Error()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.ErrClosedPipe), strings.Contains(text, "stream error"), strings.Contains(text, "GOAWAY"), strings.Contains(text, "server closed"):
		return "the connection ended before the answer was complete; look at the receiver's log"
	case strings.Contains(text, "server response headers exceeded"), strings.Contains(text, "header list larger"):
		return fmt.Sprintf("the answer has more than %d bytes of headers", maxHeader)
	case strings.Contains(text, "malformed"):
		return "the answer is not HTTP; check the scheme and the port of the URL"
	}
	return "the call failed before an answer came; look at the receiver's log"
}

// isTimeout reports whether connecting took too long. It returns false if the look-up took too
// long.
func isTimeout(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return false
	}
	netErr, ok := errors.AsType[net.Error](err)
	return ok && netErr.Timeout()
}

// tlsFailure describes a TLS error of a receiver. It returns "" for other errors.
func tlsFailure(err error) string {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate is for another host; install one for the host of the URL"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return "the certificate has expired or is not valid yet; renew it"
		}
		return "the certificate is not valid for a server; replace it"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the certificate is of an authority that the hub does not know; install the whole chain of a public one"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "no TLS on this port; check the scheme and the port of the URL"
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok || strings.Contains(err.Error(), "tls: ") {
		return "no TLS connection; the receiver has to offer TLS 1.2 or later"
	}
	return ""
}

// statusReason returns what the receiver's operator can do about a status other than 2xx.
func statusReason(status int) string {
	switch {
	case status == http.StatusGone:
		return "the receiver wants no more messages (410)"
	case status == http.StatusTooManyRequests:
		return "the receiver is called too often (429)"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Sprintf("the receiver refused the hub (%d); check that it verifies signatures with the current secret", status)
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return fmt.Sprintf("the receiver has no such resource (%d); correct the URL or the method", status)
	case status >= 300 && status <= 399:
		return fmt.Sprintf("the receiver redirects (%d), which is not followed; register the URL that it redirects to", status)
	case status >= 400 && status <= 499:
		return fmt.Sprintf("the receiver refused the message (%d); look at its log", status)
	case status >= 500 && status <= 599:
		return fmt.Sprintf("the receiver failed (%d); look at its log", status)
	}
	return fmt.Sprintf("status %d is no success; answer with 2xx", status)
}
