/**
 * $title
 *
 * <p>Written by certree $version. {@code double[] out = $name.predict(x)}, where x has $n_features
 * numbers: NaN is a missing value, and {@code $name.category(j, "text")} the code of a category.
 *
 * <pre>
 * Features:$features
 * Results:$results
 * </pre>
 */
public final class $name {
    private static final int N_OUTPUTS = $n_outputs;
    private static final int[] ROOT = integers($root_text);
    private static final int[] FEATURE = integers($feature_text);
    private static final int[] LEFT = integers($left_text);
    private static final int[] SET = integers($set_text);
    private static final int[] SETS = integers($sets_text);
    private static final double[] THRESHOLD = numbers($threshold_text);
    private static final double[] MISSING_LEFT = numbers($missing_left_text);
    private static final double[] UNSEEN_LEFT = numbers($unseen_left_text);
    private static final double UNKNOWN = -1;
    private static final double[] VALUE = numbers($value_text);
    private static final double[] START = numbers($start_text);
    private static final String[][] TEXTS = new String[$n_features][];
    private static final double[][] NUMBERS = new double[$n_features][];

    static {
$category_arrays    }

    private $name() {}

    private static String[] words(String... pieces) {
        String text = String.join("", pieces).trim();
        return text.isEmpty() ? new String[0] : text.split(" ");
    }

    private static int[] integers(String... pieces) {
        return java.util.Arrays.stream(words(pieces)).mapToInt(Integer::parseInt).toArray();
    }

    private static double[] numbers(String... pieces) {
        return java.util.Arrays.stream(words(pieces)).mapToDouble(Double::parseDouble).toArray();
    }

    /**
     * Return the code of a category that is a text, -1 if the fit did not have it, NaN for null.
     *
     * @throws IllegalArgumentException if the feature has no categories that are texts
     */
    public static double category(int feature, String text) {
        if (feature < 0 || feature >= TEXTS.length || TEXTS[feature] == null)
            throw new IllegalArgumentException(
                    "feature must be one whose categories are texts, got x[" + feature + "]");
        return text == null ? Double.NaN : java.util.Arrays.asList(TEXTS[feature]).indexOf(text);
    }

    private static double encode(int feature, double number) {
        if (NUMBERS[feature] != null && !Double.isNaN(number)) {
            for (int code = 0; code < NUMBERS[feature].length; ++code)
                if (NUMBERS[feature][code] == number) return code;
            return UNKNOWN;
        }
        return Double.isNaN(number)
                ? number
                : Math.max(-Double.MAX_VALUE, Math.min(Double.MAX_VALUE, number));
    }

    private static double leftFraction(int node, double number) {
        if (Double.isNaN(number)) return MISSING_LEFT[node];
        if (SET[node] < 0) return number <= THRESHOLD[node] ? 1 : 0;
        if (number == UNKNOWN) return UNSEEN_LEFT[node];
        for (int i = 1; i <= SETS[SET[node]]; ++i) if (SETS[SET[node] + i] == number) return 1;
        return 0;
    }

    private static void addLeaves(double[] x, int node, double fraction, double[] sum) {
        while (FEATURE[node] >= 0) {
            double left = leftFraction(node, x[FEATURE[node]]);
            if (left > 0 && left < 1) {
                addLeaves(x, LEFT[node], fraction * left, sum);
                fraction *= 1 - left;
            }
            node = LEFT[node] + (left < 1 ? 1 : 0);
        }
        for (int k = 0; k < N_OUTPUTS; ++k) sum[k] += fraction * VALUE[LEFT[node] + k];
    }

    /** Predict one row. */
    public static double[] predict(double[] x) {
        double[] row = new double[$n_features], sum = new double[N_OUTPUTS], out = new double[$n_results];
        for (int j = 0; j < row.length; ++j) row[j] = encode(j, x[j]);
        for (int root : ROOT) addLeaves(row, root, 1, sum);
        for (int k = 0; k < N_OUTPUTS; ++k) sum[k] = sum[k] / $divisor + START[k];
$link        return out;
    }
}
