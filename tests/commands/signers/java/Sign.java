import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dsql.DsqlUtilities;
import software.amazon.awssdk.services.dsql.model.GenerateAuthTokenRequest;

/** A token by AWS's own signer for Java. */
public final class Sign {
    private Sign() {}

    public static void main(String[] arguments) {
        DsqlUtilities utilities =
            DsqlUtilities.builder()
                .region(Region.of(System.getenv("AWS_REGION")))
                .credentialsProvider(
                    StaticCredentialsProvider.create(
                        AwsBasicCredentials.create(
                            System.getenv("AWS_ACCESS_KEY_ID"),
                            System.getenv("AWS_SECRET_ACCESS_KEY"))))
                .build();
        GenerateAuthTokenRequest request =
            GenerateAuthTokenRequest.builder().hostname(System.getenv("DSQL_ENDPOINT")).build();
        System.out.println(
            "admin".equals(System.getenv("DSQL_USER"))
                ? utilities.generateDbConnectAdminAuthToken(request)
                : utilities.generateDbConnectAuthToken(request));
    }
}
