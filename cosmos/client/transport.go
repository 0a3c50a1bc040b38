package client

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// noResendTransport stops azcosmos from resending a write that may have been applied. When a connection
// times out or loses its route, azcosmos assumes that the request was not sent, even if the response
// had begun. The assumption holds only while dialing.
type noResendTransport struct {
	next policy.Transporter
}

func (d noResendTransport) Do(req *http.Request) (*http.Response, error) {
	resp, err := d.next.Do(req)
	if err == nil && resp.Body != nil {
		resp.Body = noResendBody{resp.Body}
	}
	return resp, asBrokenOff(err)
}

type noResendBody struct{ io.ReadCloser }

func (b noResendBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, asBrokenOff(err)
}

// asBrokenOff wraps err in a brokenOffError if the request may have been sent, and otherwise returns
// err.
func asBrokenOff(err error) error {
	if err != nil && mayHaveBeenSent(err) {
		return brokenOffError{err}
	}
	return err
}

// mayHaveBeenSent reports whether err is an error for which azcosmos wrongly assumes that the request
// was not sent.
func mayHaveBeenSent(err error) bool {
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return record.Conn == nil // Conn is set only for the first record, which comes before any request
	}
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op == "dial" {
		return false
	}
	for _, taken := range []error{
		syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ECONNREFUSED,
	} {
		if errors.Is(err, taken) {
			return true
		}
	}
	return false
}

// A brokenOffError reports that the connection broke before the response was complete. azcosmos does
// not resend a write after it.
type brokenOffError struct{ why error }

func (e brokenOffError) Error() string        { return e.why.Error() }
func (e brokenOffError) Is(target error) bool { return target == io.ErrUnexpectedEOF }
