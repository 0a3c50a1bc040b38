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

// noResendTransport stops azcosmos from resending a write that may have been applied. azcosmos takes a
// connection that has timed out, or that has lost its route, as proof that the request was never sent,
// even in the middle of the reply. While dialing it is a proof; later it is not.
type noResendTransport struct {
	next policy.Transporter
}

func (d noResendTransport) Do(req *http.Request) (*http.Response, error) {
	resp, err := d.next.Do(req)
	if err == nil && resp.Body != nil {
		resp.Body = doubtedBody{resp.Body}
	}
	return resp, asBrokenOff(err)
}

type doubtedBody struct{ io.ReadCloser }

func (b doubtedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, asBrokenOff(err)
}

// asBrokenOff returns a brokenOffError if err only reports that the answer broke off, otherwise err.
func asBrokenOff(err error) error {
	if err != nil && mayHaveBeenSent(err) {
		return brokenOffError{err}
	}
	return err
}

// mayHaveBeenSent reports whether the request may have been sent, although azcosmos takes err as proof
// that it was not.
func mayHaveBeenSent(err error) bool {
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return record.Conn == nil // otherwise the failed record is the first one
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

// A brokenOffError reports an answer that broke off, for any reason.
type brokenOffError struct{ why error }

func (e brokenOffError) Error() string        { return e.why.Error() }
func (e brokenOffError) Is(target error) bool { return target == io.ErrUnexpectedEOF }
