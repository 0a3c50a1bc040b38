package content

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/messagehub/messagehub/domain"
)

// classifyBlobError adds a domain.Kind to an error of Blob Storage. Only this function interprets the
// status of a response. If ctx has ended, it returns the error of ctx.
func classifyBlobError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	resp, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		// err must not be wrapped: it may be the exceeded deadline of one attempt, which errors.Is could
		// not distinguish from the deadline of the caller.
		return domain.Errorf(domain.Unavailable, "the account did not respond, or no token could be acquired: %v", err)
	}
	text := fmt.Sprintf("the account responded with %d %s%s", resp.StatusCode, resp.ErrorCode, formatRequestID(resp))
	code := bloberror.Code(resp.ErrorCode)
	switch {
	case code == bloberror.ContainerNotFound, code == bloberror.ContainerBeingDeleted, code == bloberror.ContainerDisabled:
		return domain.Errorf(domain.Unavailable, "%s: create the container, or correct its name", text)
	case code == bloberror.BlobNotFound, resp.StatusCode == http.StatusNotFound && code == "":
		return domain.Errorf(domain.NotFound, "the object does not exist (%s)", text)
	case resp.StatusCode == http.StatusNotFound:
		return domain.Errorf(domain.Unavailable, "%s: check the endpoint, which may belong to another account", text)
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return domain.Errorf(domain.Unavailable, "%s: check the key or the identity (it needs the role Storage Blob Data Contributor), the account's firewall, and this machine's clock", text)
	case resp.StatusCode == http.StatusConflict:
		return domain.Errorf(domain.Conflict, "%s", text)
	case resp.StatusCode == http.StatusPreconditionFailed, resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return domain.Errorf(domain.Damaged, "the object has changed (%s)", text)
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		return domain.Errorf(domain.Busy, "%s", text)
	case resp.StatusCode == http.StatusRequestTimeout, resp.StatusCode >= http.StatusInternalServerError && resp.StatusCode != http.StatusNotImplemented:
		return domain.Errorf(domain.Unavailable, "%s", text)
	}
	return errors.New(text)
}

// formatRequestID returns the id of a request in parentheses. Azure support needs the id.
func formatRequestID(resp *azcore.ResponseError) string {
	if resp.RawResponse == nil {
		return ""
	}
	if id := resp.RawResponse.Header.Get("x-ms-request-id"); id != "" {
		return " (request " + id + ")"
	}
	return ""
}

// An attemptObserver is a policy that records whether an attempt of a request failed although the
// account may have executed the request.
type attemptObserver struct{}

type attemptObserverKey struct{}

// observeAttempts returns a context for one request. lost is set to true if an attempt fails although the
// account may have executed the request.
func observeAttempts(ctx context.Context) (_ context.Context, lost *bool) {
	lost = new(bool)
	return context.WithValue(ctx, attemptObserverKey{}, lost), lost
}

// Do implements [policy.Policy].
func (attemptObserver) Do(r *policy.Request) (*http.Response, error) {
	resp, err := r.Next()
	if lost, ok := r.Raw().Context().Value(attemptObserverKey{}).(*bool); ok && isOutcomeUnknown(resp, err) {
		*lost = true
	}
	return resp, err
}

// isOutcomeUnknown reports whether the account may have executed a write although it failed with this
// result.
func isOutcomeUnknown(resp *http.Response, err error) bool {
	unknown := []int{
		http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
	return err != nil || slices.Contains(unknown, resp.StatusCode)
}
