module holdfast/tests/signer

go 1.22

require (
	github.com/aws/aws-sdk-go-v2 v1.38.2
	github.com/aws/aws-sdk-go-v2/feature/dsql/auth v1.1.5
)

require github.com/aws/smithy-go v1.23.0 // indirect
