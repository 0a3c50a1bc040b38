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

// classifyBlobError returns the error of a call to Blob Storage with its domain.Kind. It is the only
// place where a status is interpreted. If ctx has ended, it returns the error of ctx.
func classifyBlobError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		// The error is not wrapped: it may be the deadline of an attempt, which is not the caller's.
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

// requestOf returns the id of a request, for which Azure's support asks.
func requestOf(answer *azcore.ResponseError) string {
	if answer.RawResponse == nil {
		return ""
	}
	if id := answer.RawResponse.Header.Get("x-ms-request-id"); id != "" {
		return " (request " + id + ")"
	}
	return ""
}

// A witness observes every attempt of a request, and remembers whether one that seemed to fail may have
// been carried out.
type witness struct{}

type witnessKey struct{}

// withWitness returns a context for one request. lost is set if an answer of it was lost.
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

// isUnknown reports whether a write with this result may have been carried out.
func isUnknown(resp *http.Response, err error) bool {
	unknown := []int{
		http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
	return err != nil || slices.Contains(unknown, resp.StatusCode)
}
