package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/siftkv/siftkv/objstore"
)

// A Config names the server of the objects, in addition to the [Options].
type Config struct {
	Options

	// Endpoint is the URL of a server that is not AWS's, such as http://127.0.0.1:7070. Empty: what
	// AWS_ENDPOINT_URL_S3 or the shared configuration says, else AWS. It must not hold credentials.
	Endpoint string

	// Region is empty for what AWS_REGION or the shared configuration says, else us-east-1, which servers other
	// than AWS's take.
	Region string

	// PathStyle puts the bucket into the path and not into the host's name. Most servers except AWS need that.
	PathStyle bool

	// Credentials are nil for the SDK's chain: environment, shared configuration and single sign-on, web
	// identity, the roles of containers and machines.
	Credentials aws.CredentialsProvider
}

const scheme = "s3"

// ParseURL returns the configuration that a URL stands for:
//
//	s3://bucket/prefix?endpoint=http://127.0.0.1:7070&region=eu-central-1&path-style=true
//
// All parameters may be left out; path-style is true by default where an endpoint is given. The URL holds no
// credentials: one that does is refused, and no error repeats it.
func ParseURL(rawURL string) (Config, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil: // whose text has parts of the URL, which may be secrets
		return Config{}, errors.New("s3: not a valid URL; it is to look like s3://bucket/prefix")
	case u.Scheme != scheme || u.Host == "" || u.Opaque != "" || u.Fragment != "":
		return Config{}, errors.New("s3: the URL does not look like s3://bucket/prefix")
	case u.User != nil:
		return Config{}, errors.New("s3: the URL holds credentials; they belong in the environment or a profile")
	case u.Port() != "":
		return Config{}, errors.New("s3: the URL has a port; servers are given as ?endpoint=http://host:port")
	}
	c := Config{Options: Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Config{}, errors.New("s3: the URL's parameters are not valid")
	}
	c.PathStyle = query.Get("endpoint") != ""
	for name, values := range query {
		if len(values) != 1 {
			return Config{}, errors.New("s3: the URL has a parameter twice")
		}
		switch name {
		case "endpoint":
			c.Endpoint = values[0]
		case "region":
			c.Region = values[0]
		case "path-style":
			if c.PathStyle, err = strconv.ParseBool(values[0]); err != nil {
				return Config{}, errors.New("s3: path-style is neither true nor false")
			}
		default: // its name may be that of a secret, and its value one
			return Config{}, errors.New("s3: the URL has a parameter other than endpoint, region and path-style")
		}
	}
	return c, checkEndpoint(c.Endpoint)
}

// checkEndpoint refuses what is not the URL of a server, without repeating it.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("s3: the endpoint does not look like https://host or http://host:port")
	case u.User != nil:
		return errors.New("s3: the endpoint holds credentials; they belong in the environment or a profile")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("s3: the endpoint has parameters")
	}
	return nil
}

// OpenURL is [Open] of what [ParseURL] makes of a URL.
func OpenURL(ctx context.Context, rawURL string) (objstore.Store, error) {
	c, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return Open(ctx, c)
}

// Open returns a store of the objects in a bucket. It sends no request to the bucket: that the bucket is there,
// and that the server honours conditions, is for [objstore.CheckConditional] to say. ctx is for finding
// credentials.
func Open(ctx context.Context, c Config) (objstore.Store, error) {
	o, err := c.withDefaults()
	if err == nil {
		err = checkEndpoint(c.Endpoint)
	}
	if err != nil {
		return nil, err
	}
	pool := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = o.Requests, o.Requests
	})
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(pool),
		config.WithLogger(logging.Nop{}), // the SDK writes to standard error otherwise
	}
	if c.Region != "" {
		load = append(load, config.WithRegion(c.Region))
	}
	if c.Credentials != nil {
		load = append(load, config.WithCredentialsProvider(c.Credentials))
	}
	settings, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("s3: configuration of the AWS SDK: %w", ctx.Err())
		}
		// The reason may repeat lines of files that hold secrets.
		return nil, errors.New("s3: the AWS SDK finds its configuration (AWS_*, ~/.aws) not valid")
	}
	setDefault(&settings.Region, "us-east-1")
	return New(s3.NewFromConfig(settings, func(o *s3.Options) {
		o.UsePathStyle = o.UsePathStyle || c.PathStyle
		if c.Endpoint != "" {
			o.BaseEndpoint = &c.Endpoint
		}
	}), c.Options)
}
