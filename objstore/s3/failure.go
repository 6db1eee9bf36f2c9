package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/smithy-go"

	"github.com/siftkv/siftkv/objstore"
)

// A failure is why a try failed. Its text is the package's own: what the SDK and servers say is put into it without
// credentials, and the SDK's errors cannot be reached through it.
type failure struct {
	text      string
	causes    []error // for errors.Is
	again     bool    // another try may succeed
	lost      bool    // it may have been performed, or may be yet
	throttled bool    // the server asked for fewer requests
	silent    bool    // the server did not reply in time
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() []error { return f.causes }

func (f *failure) is(target error) bool { return slices.Contains(f.causes, target) }

// also adds a reason why there was no further try.
func (f *failure) also(err error) {
	f.text = fmt.Sprintf("%v, after: %s", err, f.text)
	f.causes = append(f.causes, err)
}

// ended returns the failure of a try with an ended context.
func ended(ctx context.Context, sent bool) *failure {
	return &failure{text: ctx.Err().Error(), causes: []error{ctx.Err()}, lost: sent}
}

// broken returns the failure of a request that cannot be made, or is pointless.
func broken(err error) *failure { return &failure{text: err.Error(), causes: []error{err}} }

// judge says what the error of a try means. ctx is the call's, which has no deadline of the try's own.
func judge(ctx context.Context, a *attempt, err error) *failure {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*failure](err); ok {
		return own
	}
	reply, ok := errors.AsType[*awshttp.ResponseError](err)
	switch {
	case ok && reply.Response != nil && reply.HTTPStatusCode() >= http.StatusMultipleChoices:
		return refusal(reply.HTTPStatusCode(), reply.ServiceRequestID(), a, err)
	case ctx.Err() != nil:
		return ended(ctx, a.sent.Load() > 0)
	case !a.begun.Load() && a.stalled.Load():
		return &failure{text: "the request could not be made: nothing has provided credentials in time; " + hint}
	case !a.begun.Load():
		return &failure{text: a.clean("the request could not be made: " + reasonOfNone(err))}
	case isTrust(err):
		return &failure{text: a.clean(reasonOf(err)), lost: a.sent.Load() > 0}
	}
	// The connection broke, the try made no progress, or the reply makes no sense.
	f := &failure{text: a.clean(reasonOf(err)), again: true, lost: a.sent.Load() > 0}
	if a.stalled.Load() {
		f.silent = true
		waited := time.Since(a.progress.begun).Round(time.Millisecond)
		f.text = fmt.Sprintf("no reply from %s within %v", a.host(), waited)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		f.causes = append(f.causes, io.ErrUnexpectedEOF)
	}
	return f
}

// hint says what to do about missing credentials.
const hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile of ~/.aws, or give this " +
	"machine or container a role"

// reasonOfNone returns why there was no request: mostly, for want of credentials. The program that is to provide them
// may have its output in the text, where they are.
func reasonOfNone(err error) string {
	if _, ok := errors.AsType[*processcreds.ProviderError](err); ok {
		return "credential_process failed, or what it wrote is not valid"
	}
	if strings.Contains(err.Error(), "get credentials: ") { // the SDK has no value or type for it
		return "there are no credentials; " + hint + " (" + err.Error() + ")"
	}
	return err.Error()
}

// isTrust reports whether the server's certificate was refused, which it will be again.
func isTrust(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// reasonOf leaves out what stands in the text of an error before its reason, URLs among it.
func reasonOf(err error) string {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		return inner.Err.Error()
	}
	return err.Error()
}

// refusal says what a reply means that is not a success.
func refusal(status int, id string, a *attempt, err error) *failure {
	code, message := "", ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code, message = api.ErrorCode(), api.ErrorMessage()
	}
	text := fmt.Sprintf("HTTP %d %s: %s", status, a.quote(code), a.quote(message))
	if id != "" {
		text += " (request " + a.quote(id) + ")"
	}
	f := &failure{text: text}
	switch {
	case status == http.StatusNotFound && code == "NoSuchKey":
		f.causes = append(f.causes, objstore.ErrNotExist)
	case status == http.StatusPreconditionFailed:
		f.causes = append(f.causes, objstore.ErrExists)
	case status == http.StatusRequestedRangeNotSatisfiable:
		f.causes = append(f.causes, io.EOF)
	case isThrottle(status, code):
		f.again, f.throttled = true, true
		f.causes = append(f.causes, objstore.ErrThrottled)
	case code == "RequestTimeTooSkewed": // the SDK has learnt the server's time from the reply
		f.again = true
	case isTransient(status, code):
		f.again, f.lost = true, true
		f.throttled = status == http.StatusServiceUnavailable
	case errors.Is(err, io.ErrUnexpectedEOF): // it broke off before it said why
		f.again = true
	}
	return f
}

// isThrottle reports whether a request was refused for its haste. A 503 without such a code may come from a proxy
// that has passed the request on.
func isThrottle(status int, code string) bool {
	switch code {
	case "SlowDown", "ServiceUnavailable", "RequestLimitExceeded", "BandwidthLimitExceeded", "TooManyRequests":
		return true
	}
	return status == http.StatusTooManyRequests || strings.HasPrefix(code, "Throttl")
}

// isTransient reports whether a request may have been performed all the same, or succeed if it is repeated.
func isTransient(status int, code string) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return code == "RequestTimeout" || code == "InternalError"
}

// maxSaid is how much of what a server says goes into an error, in bytes.
const maxSaid = 300

// quote returns what a server says, fit for an error. It is shortened last: a part of a secret is not found.
func (a *attempt) quote(said string) string {
	said = a.clean(said)
	return strings.ToValidUTF8(said[:min(len(said), maxSaid)], "")
}
