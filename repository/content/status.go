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

// classifyBlobError returns the error of a call to Blob Storage in the terms of the port. It is
// the only place where a status is interpreted. An error that comes with the end
// of ctx is that of ctx.
func classifyBlobError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		// Not wrapped: an attempt has deadlines that are not the caller's.
		return domain.Errorf(domain.Unavailable, "the account gave no answer, or there is no token for it: %v", err)
	}
	told := fmt.Sprintf("the account answered %d %s%s", answer.StatusCode, answer.ErrorCode, requestOf(answer))
	code := bloberror.Code(answer.ErrorCode)
	switch {
	case code == bloberror.ContainerNotFound, code == bloberror.ContainerBeingDeleted, code == bloberror.ContainerDisabled:
		return domain.Errorf(domain.Unavailable, "%s: make the container, or correct its name", told)
	case code == bloberror.BlobNotFound, answer.StatusCode == http.StatusNotFound && code == "":
		return domain.Errorf(domain.NotFound, "there is no such object (%s)", told)
	case answer.StatusCode == http.StatusNotFound:
		return domain.Errorf(domain.Unavailable, "%s: see to the endpoint, which may be that of another account", told)
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		return domain.Errorf(domain.Unavailable, "%s: see to the key or the identity (it needs the role Storage Blob Data Contributor), the account's firewall, and this machine's clock", told)
	case answer.StatusCode == http.StatusConflict:
		return domain.Errorf(domain.Conflict, "%s", told)
	case answer.StatusCode == http.StatusPreconditionFailed, answer.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return domain.Errorf(domain.Damaged, "the object is not what it was (%s)", told)
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode == http.StatusServiceUnavailable:
		return domain.Errorf(domain.Busy, "%s", told)
	case answer.StatusCode == http.StatusRequestTimeout, answer.StatusCode >= http.StatusInternalServerError && answer.StatusCode != http.StatusNotImplemented:
		return domain.Errorf(domain.Unavailable, "%s", told)
	}
	return errors.New(told)
}

// requestOf returns what Azure's support asks for.
func requestOf(answer *azcore.ResponseError) string {
	if answer.RawResponse == nil {
		return ""
	}
	if id := answer.RawResponse.Header.Get("x-ms-request-id"); id != "" {
		return " (request " + id + ")"
	}
	return ""
}

// A witness sees every attempt at a request, and remembers whether one may have
// been carried out though it did not seem to be.
type witness struct{}

type witnessKey struct{}

// withWitness returns a context for one request, and where the witness reports a lost answer.
func withWitness(ctx context.Context) (_ context.Context, lost *bool) {
	lost = new(bool)
	return context.WithValue(ctx, witnessKey{}, lost), lost
}

// Do implements [policy.Policy].
func (witness) Do(r *policy.Request) (*http.Response, error) {
	resp, err := r.Next()
	if lost, ok := r.Raw().Context().Value(witnessKey{}).(*bool); ok && isUnknown(resp, err) {
		*lost = true
	}
	return resp, err
}

// isUnknown reports whether a write that ended like this may have been carried out.
func isUnknown(resp *http.Response, err error) bool {
	unknown := []int{
		http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
	return err != nil || slices.Contains(unknown, resp.StatusCode)
}
