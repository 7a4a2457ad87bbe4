// A token by AWS's own signer for Go.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dsql/auth"
)

func keys(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID:     os.Getenv("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
	}, nil
}

func main() {
	sign := auth.GenerateDbConnectAuthToken
	if os.Getenv("DSQL_USER") == "admin" {
		sign = auth.GenerateDBConnectAdminAuthToken
	}
	token, err := sign(context.Background(), os.Getenv("DSQL_ENDPOINT"), os.Getenv("AWS_REGION"),
		aws.CredentialsProviderFunc(keys))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(token)
}
